"""Problems of Aryl (EuroSys'23 as Lyra)."""
