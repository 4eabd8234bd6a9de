"""Slurm scripts as they are: every flag of sbatch read, and mapped to a job or named as not mapped."""
