"""What tests of what users see share: programs to report on, a browser, a display of progress."""
