"""One sweep over many workers: Submitit and Ray run its shards, each of which a host plans and measures by itself."""
