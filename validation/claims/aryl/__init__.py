"""Claims of Aryl (EuroSys'23 as Lyra), each under the name of the problem that it is about."""
