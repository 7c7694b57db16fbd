"""From parameters to labels: exact posteriors, decoding, samples and explanations."""
