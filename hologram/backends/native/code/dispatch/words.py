"""Words that native code walks: what arguments of a specialisation look like, and what its results are put in.

A specialisation's ``parameters`` are words in the order in which the arguments are walked; each value is one of

====================================  =====================================================================================
``TENSOR aval``                       a Tensor with a Storage of this Aval
``OWNER aval``                        the same, and the memory is the Storage's own
``ARRAY descr ndim extents…``         an aligned C-contiguous ``ndarray`` with this very dtype object and shape
``VALUE type``                        a NumPy scalar of this very type
``FLOAT format``                      a Python float, converted to the format
``INTEGER format low high``           a Python int within bounds, converted
``BOOLEAN format``                    a Python bool, converted
``SAME object``                       this object, or an equal int or str
``REMOTE aval pool``                  a Tensor of this Aval on the device whose memory is in this pool
``BUFFER dtype least most``           an SDK buffer of this DType with that many bytes
``FIELD type slot object``            an object of this very type whose slot holds this very object
``TUPLE n``, ``LIST n``               followed by n values
``DICT n``                            followed by n times: key object, value
``NAMED type n``                      a tuple of this very type, followed by n values
``ATTRIBUTES type n m``               an object of this very type, followed by n times: name, value of the attribute; then m times: name, object that
                                      equals the attribute
``PARTS type function data n``        an object of this very type of which the function gives children and data, which equal these, followed by n
                                      values, the children
====================================  =====================================================================================

and ``result`` is one of

====================================  =====================================================================================
``RESULT i``                          the Tensor of output i
``PASSED i``                          a Tensor with the Storage of leaf i
``NUMBER i format``                   the first element of output i as a Python float
``SAME object``                       this object
``TUPLE n``, ``LIST n``, ``DICT n``   as above
``CALLED function n``                 what the function gives for n values
``JOINED function data n``            what the function gives for the data and a list of n values
``ASSIGNED function type n m``        what the function gives for the type, then as ``ATTRIBUTES``: attributes that are set
====================================  =====================================================================================
"""

TENSOR, ARRAY, VALUE, FLOAT, INTEGER, BOOLEAN, SAME, REMOTE, BUFFER, FIELD, OWNER, TUPLE, LIST, DICT, NAMED, ATTRIBUTES, PARTS = range(17)
RESULT, PASSED, NUMBER, CALLED, JOINED, ASSIGNED = range(17, 23)
