"""Where papers can be read, by the name under which baselines cite them."""

SOURCES = {
    "Audibert, Bubeck (COLT 2009)": "https://hal.science/hal-00834882",
    "Auer, Cesa-Bianchi, Fischer (Machine Learning 2002)": "https://doi.org/10.1023/A:1013689704352",
    "Chen, Wang, Yuan (ICML 2013)": "https://proceedings.mlr.press/v28/chen13a.html",
    "Chu, Li, Reyzin, Schapire (AISTATS 2011)": "https://proceedings.mlr.press/v15/chu11a.html",
    "Deva, Abhishek, Gujar (AAMAS 2021)": "https://arxiv.org/abs/2102.04824",
    "Dubey, Pentland (NeurIPS 2020)": "https://arxiv.org/abs/2010.11425",
    "He et al. (NeurIPS 2022)": "https://arxiv.org/abs/2207.03106",
    "He, Wang, Min, Gu (NeurIPS 2022)": "https://arxiv.org/abs/2207.03106",
    "Huang, Wu, Yang, Shen (NeurIPS 2021)": "https://arxiv.org/abs/2110.14177",
    "Li, Chu, Langford, Schapire (WWW 2010)": "https://arxiv.org/abs/1003.0146",
    "Li, Lu, Zhou (ICML 2017)": "https://arxiv.org/abs/1703.00048",
    "Li, Wang (AISTATS 2022)": "https://arxiv.org/abs/2110.01463",
    "Li, Wang (NeurIPS 2022)": "https://arxiv.org/abs/2202.01087",
    "Patil, Ghalme, Nair, Narahari (JMLR 2021)": "https://jmlr.org/papers/v22/20-704.html",
    "Shariff, Sheffet (NeurIPS 2018)": "https://arxiv.org/abs/1810.00068",
    "Shi, Shen (AAAI 2021)": "https://arxiv.org/abs/2101.12204",
    "Shi, Shen, Yang (AISTATS 2021)": "https://arxiv.org/abs/2102.13101",
    "Solanki (thesis, 2024)": "https://blogs.iiit.ac.in/monthly_news/sambhav-solanki/",
    "Solanki, Kanaparthi, Damle, Gujar (ECML PKDD 2022)": "https://arxiv.org/abs/2206.13192",
    "Sutton, Barto (2018)": "http://incompleteideas.net/book/the-book-2nd.html",
    "Thompson (Biometrika 1933)": "https://doi.org/10.1093/biomet/25.3-4.285",
    "Wang, Bai, Sun, Joachims (ICML 2021)": "https://arxiv.org/abs/2103.02735",
    "Wang, Hu, Chen, Wang (ICLR 2020)": "https://arxiv.org/abs/1904.06309",
    "Zhou, Chowdhury (ICLR 2024)": "https://arxiv.org/abs/2302.13945",
}


def linked(reference: str) -> str:
    """Returns what a baseline says of its source, with links to the papers, in Markdown."""
    for paper, address in SOURCES.items():
        reference = reference.replace(paper, f"[{paper}]({address})")
    return reference
