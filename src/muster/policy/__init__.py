"""Small judgements over values: who may take what from whom."""
