"""What types, arrays and the namespace say of themselves: element types, constants, kinds of types, the Array API's inspection functions."""
