"""Claims of Sia (SOSP'23), each under the name of the problem that it is about."""
