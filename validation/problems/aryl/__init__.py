"""Entries of the problems of Aryl (EuroSys'23 as Lyra)."""
