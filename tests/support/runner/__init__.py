"""How tests are chosen and their process is watched."""
