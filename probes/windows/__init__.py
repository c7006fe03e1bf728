"""Windows: adapters, counters, registry, devices and event log, behind one typed door."""
