"""What tests of pages share: programs to report on, and a browser."""
