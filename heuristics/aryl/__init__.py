"""Fast methods for the problems of Aryl (EuroSys'23 as Lyra)."""
