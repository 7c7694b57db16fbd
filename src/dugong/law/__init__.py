"""What is learned: parameters, a prior and how far they are trusted, as one value that answers for the labels."""
