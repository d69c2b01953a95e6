"""The compiler: from a traced graph to an execution plan of scheduled kernels and addresses."""
