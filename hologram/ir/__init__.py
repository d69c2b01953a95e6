"""What a program is: nodes of ops with shapes and types, their text, and the interpreter that is their meaning."""
