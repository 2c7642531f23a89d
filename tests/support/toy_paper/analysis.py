from fedbandit_envs.papers.reproduction.comparison import ordered, over_rounds

__all__ = ["ordered"]


def curves(runs):
    return {f"{row.labels['line']} {row.labels['radius']:g}": over_rounds(row.result) for row in runs.rows}
