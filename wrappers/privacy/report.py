"""Reports of privacy: what is protected, from whom, how well, and what is not, as JSON, Markdown and HTML.

A report says what a claim says, never less, and what is needed to judge it. ``docs/privacy-report.md`` maps its fields
to NIST SP 800-226 and to the schema of the Differential Privacy Deployments Registry.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from math import exp, inf, sqrt
from typing import Any

import numpy as np

from fedbandit_envs.basics.html import html_table
from fedbandit_envs.core.federated_env import FederatedEnv
from fedbandit_envs.core.privacy import AGENT, Claim
from fedbandit_envs.core.wrapper import find_layer, layers
from fedbandit_envs.wrappers.privacy.accounting.event import Accountant
from fedbandit_envs.wrappers.privacy.mechanisms.additive import Mechanism
from fedbandit_envs.wrappers.privacy.privatizer import Privatizer

SCHEMA_VERSION = 1
"""Version of the JSON; fields are added within a version, and none is removed or changes its meaning."""

DELTAS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10)
"""Where a report gives points of the curve."""

_ADJACENCIES = {
    "one-quantity": "the quantity requested from one producer in one round, and what came of it",
    "one-round": "the quantities requested from all producers in one round, and what came of them",
    "one-observation": "one observation, such as a round's choice and its reward, replaced by any other possible one",
    "one-observation-added": "one observation, which is there or is missing",
    "one-outcome": "one outcome, good or bad; what was chosen is not protected",
    AGENT: "all data of one agent (a silo with everybody in it), replaced by any other data",
}
_OBSERVERS = {
    "everybody": "everybody but the agent itself: other agents, servers, and whoever reads messages on their way",
    "wire": "whoever reads an agent's uploads",
    "server": "whoever sees what the server sees",
    "fellow": "any other agent, which also knows its own data",
    "public": "whoever sees only what is sent to all",
}
_TRUSTS = {
    "local": "nobody but the agent itself",
    "shuffler": "a shuffler that hides who sent what",
    "aggregator": "a secure sum that shows nothing but the sum",
    "server": "the server, which sees data without noise",
    "cryptography": "the cryptography and its keys",
}
_NOISES = {
    "none": "there is no noise",
    "repeatable": "whoever knows or finds the seed can compute the noise and subtract it: for simulations only",
    "secret": "the noise follows from secret random bits",
}
_COMPOSITIONS = {
    "basic": "epsilons and deltas of all releases are added up",
    "zcdp": "zero-concentrated differential privacy: the parameters rho of all releases are added up",
    "exact": "the privacy curves of all releases are composed exactly or rounded up, which is less than their sum",
    "parallel": "releases are of disjoint data, and the largest epsilon of one release counts",
}
FLOATING = "floating-point numbers, whose last digits may betray what noise was added to"
"""How mechanisms compute noise."""

NOT_COVERED = (
    "More than the unit: a person with several units loses more, at most epsilon times their number.",
    "When and how often messages are sent; plans fix these times without looking at data.",
    "What agents do: whoever watches an agent's actions or their effects learns from them.",
    "One person whose data are at several agents, or in several runs, who loses more in the same way.",
    "Other ways out of an agent's machine: logs, backups, the store on disk, times of computation.",
    "Whether the data were lawfully collected, and who may see them where they are.",
)
"""What no claim covers."""


@dataclass(frozen=True)
class PrivacyReport:
    """A report of privacy.

    Attributes:
        fields: What it says, as JSON data.

    Example:
        >>> from fedbandit_envs.arms_v0 import parallel_env
        >>> from fedbandit_envs.wrappers import GaussianPrivatizer
        >>> env = GaussianPrivatizer(parallel_env(num_agents=2), epsilon=1.0, delta=1e-5, releases=1)
        >>> _ = env.reset(seed=0), env.release([[True, True]])
        >>> report = env.privacy_report()
        >>> report.fields["guarantees"][0]["trust"], report.fields["protected"]["adjacency"]
        ('local', 'one-observation')
        >>> report.markdown().splitlines()[0]
        '# Privacy report: arms_v0'
    """

    fields: Mapping[str, Any]

    def markdown(self) -> str:
        """Returns the report as Markdown."""
        lines = [f"# Privacy report: {self.fields['subject']['environment']}", "", *self._summary(), ""]
        for title, rows in self._tables():
            lines += [f"## {title}", "", *(["| | |", "|---|---|"] if rows else ["None."])]
            lines += [f"| {name} | {_text(value)} |" for name, value in rows] + [""]
        return "\n".join(lines)

    def html(self) -> str:
        """Returns the report as an HTML page."""
        title = escape(f"Privacy report: {self.fields['subject']['environment']}")
        parts = [
            f"<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>{title}</title><h1>{title}</h1>"
        ]
        parts += [f"<p>{escape(sentence)}</p>" for sentence in self._summary() if sentence]
        for heading, rows in self._tables():
            parts.append(html_table(heading, [(name, _text(value)) for name, value in rows]))
        return "\n".join([*parts, "</html>\n"])

    def _repr_html_(self) -> str:
        return self.html()

    def _summary(self) -> list[str]:
        """Returns what is protected, one paragraph for each guarantee, and what noise is worth."""
        lines = [f"Protected: {self.fields['protected']['unit']}."]
        for one in self.fields["guarantees"]:
            lines += ["", f"Against {one['against']}; one has to trust {one['trusting']}. {one['means']}"]
        return [*lines, "", f"Noise is {self.fields['noise']['kind']}: {self.fields['noise']['means']}."]

    def _tables(self) -> list[tuple[str, list[tuple[str, Any]]]]:
        """Returns the report as titles, each with rows of names and values."""
        tables: list[tuple[str, list[tuple[str, Any]]]] = []
        for part, value in self.fields.items():
            title = part.replace("_", " ").capitalize()
            if isinstance(value, Mapping):
                tables.append((title, [(str(name).replace("_", " "), one) for name, one in value.items()]))
            elif part == "not_covered":
                tables.append((title, [(str(place), one) for place, one in enumerate(value, 1)]))
            elif isinstance(value, Sequence) and not isinstance(value, str):
                for place, one in enumerate(value, 1):
                    rows = [
                        (str(name).replace("_", " "), each)
                        for name, each in one.items()
                        if each not in ("", [])
                    ]
                    tables.append((f"{title}, {place} of {len(value)}", rows))
        return tables


def _text(value: Any) -> str:
    """Returns a value as text for a table's cell."""
    if isinstance(value, list):
        return "; ".join(map(_text, value)) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(one)}" for name, one in value.items())
    if isinstance(value, float):
        short = f"{value:.6g}"
        # Rounded up: no text says less than the number.
        return short if float(short) >= value else f"{value * (1 + 1e-5):.6g}"
    if value is None or isinstance(value, bool):
        return {None: "not known", True: "yes", False: "no"}[value]
    return str(value).replace("|", r"\|") or "none"


def report_of(env: FederatedEnv, measured: Mapping[str, float]) -> PrivacyReport:
    """Returns the report of an environment's episode; see :meth:`.FederatedEnv.privacy_report`."""
    claims, noise = env.privacy_claims(), find_layer(env, "noise")
    subject = {"kind": "simulation", "environment": env.metadata["name"], "agents": env.max_num_agents}
    subject |= {"rounds_planned": env.max_cycles, "layers": [type(layer).__name__ for layer in layers(env)]}
    if not isinstance(noise, Privatizer):
        return make_report(subject, claims, measured=measured)
    books = noise.accountant, noise.mechanism, getattr(noise.env, "_clip", None)
    return make_report(subject, claims, noise.claims, *books, measured=measured)


def make_report(
    subject: Mapping[str, Any],
    claims: Sequence[Claim],
    asked: Callable[..., list[Claim]] | None = None,
    accountant: Accountant | None = None,
    mechanism: Mechanism | None = None,
    clip: float | None = None,
    sampling: str = FLOATING,
    measured: Mapping[str, float] = {},
) -> PrivacyReport:
    """Returns the report of a simulation or a silo.

    Args:
        subject: What the report is of, by name, ``environment`` among it.
        claims: The claims, against one observer each.
        asked: A function that returns these claims for another ``delta`` and ``composition``; None without noise.
        accountant: The accountant of the releases; None without noise.
        mechanism: The mechanism that adds the noise; None without noise.
        clip: The largest norm of a release; None without a clip.
        sampling: How noise is computed.
        measured: What was measured besides, by name, such as ``audited_epsilon`` (a lower bound) or ``regret``.
    """
    guarantees: list[dict[str, Any]] = [
        {
            **claim.as_json(),
            "observer": claim.observer,
            "against": _OBSERVERS.get(claim.observer, claim.observer),
            "trusting": _TRUSTS.get(claim.trust, claim.trust),
            "composition_means": _COMPOSITIONS[claim.composition],
            "means": _meaning(claim),
            "curve": [],
            "curve_means": "epsilon at other deltas for the same releases, composed exactly",
        }
        for claim in claims
    ]
    for delta in DELTAS:
        for told, claim in zip(
            guarantees, asked(delta=delta, composition="exact") if asked else (), strict=False
        ):
            if claim.epsilon is not None:
                told["curve"].append({"delta": delta, "epsilon": claim.as_json()["epsilon"]})
    first = claims[0]
    fields: dict[str, Any] = {
        "protected": {
            "adjacency": first.adjacency,
            "unit": _ADJACENCIES.get(first.adjacency, f"what the environment calls {first.adjacency}"),
            "whose": "data of every agent; numbers, of releases too, are those of the agent that has lost most",
        },
        "guarantees": guarantees,
        "subject": dict(subject),
        "schema": {"name": "fedbandit-envs privacy report", "version": SCHEMA_VERSION},
        "software": {"name": "fedbandit-envs", "version": version("fedbandit-envs")},
        "noise": {"kind": first.noise, "means": _NOISES[first.noise]},
        "mechanism": {"name": "no noise"},
        "measured": dict(measured),
        "not_covered": list(NOT_COVERED),
    }
    if accountant is None or mechanism is None:
        return PrivacyReport(fields)
    used = list(zip(accountant.events, accountant.counts, strict=True))
    made = int(np.max(sum(event.releases * counts for event, counts in used))) if used else 0
    most = mechanism.max_releases
    fields["mechanism"] = {
        "name": type(mechanism).__name__,
        "sampling": sampling,
        "correlated_releases": mechanism.correlated,
        "clip": "none" if clip is None else clip,
        "releases_made": made,
        "releases_planned": "no limit" if most is None else most,
        "events_mean": "noise that one or several releases share, and how often; its loss is mu of Gaussian noise, or "
        "epsilon of other noise, if one number changes as far as it can; totals count all numbers that a unit changes",
        "events": [
            {
                "kind": event.kind.replace("_", " "),
                # mu of Gaussian noise, epsilon of other noise.
                "loss_if_one_number_changes_by_its_scale": event.loss if event.loss < inf else "infinity",
                "releases_in_one": event.releases,
                "times": int(counts.max()),
            }
            for event, counts in used
        ],
    }
    covering = accountant.covering(first.adjacency)
    if used and all(event.kind == "gaussian" for event, _ in used):
        mu = sqrt(np.max(sum(counts * event.mu(covering) ** 2 for event, counts in used)))
        fields["mechanism"]["mu_of_gaussian_dp"] = mu if mu < inf else "infinity"
    # With basic composition the deltas of further releases add up, too.
    at, ended = None if first.composition == "basic" else first.delta, most is not None and made >= most
    again = accountant.after(dict(used)).epsilon(at, composition=first.composition, adjacency=first.adjacency)
    # An observer who sees more than the accountant's noise knows no less when all is done once more.
    if first.epsilon is None or (again.epsilon is not None and again.epsilon < first.epsilon):
        again = first
    fields["if_it_goes_on"] = {
        "further_releases": "none: the plan is used up, and more rounds need a new one"
        if ended
        else "possible",
        "once_more": "as many releases again of the same people's data: a second run, or twice the rounds and releases",
        "epsilon_if_all_is_done_once_more": again.as_json()["epsilon"],
        "delta_if_all_is_done_once_more": again.delta,
    }
    return PrivacyReport(fields)


def _meaning(claim: Claim) -> str:
    """Returns what a claim's numbers mean, in a sentence."""
    numbers = f"Epsilon: {_text(claim.as_json()['epsilon'])} at delta {_text(claim.delta)}"
    if claim.epsilon is None or claim.epsilon == inf:
        return f"{numbers}: there is no guarantee, since {claim.reason}."
    odds = f"what is seen is at most {exp(min(claim.epsilon, 700.0)):.3g} times as likely with one value of the unit"
    return f"{numbers}: {odds} as with any other, except with probability {_text(claim.delta)}."
