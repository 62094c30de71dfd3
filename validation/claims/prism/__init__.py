"""Claims of the released placement task of Prism, under the name of the problem that it is about."""
