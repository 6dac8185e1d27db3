"""The contract of the offers, tried on a real account: what `fractal verify` does.

    assumptions    everything we assume of the clouds, each with its source: the one table
    example        the smallest declaration of a type with which its offer is tried
    examples       one module of such declarations for each provider
    account        the account as a person sees it: the offers' verbs, called outside of the agent
    checks         tries one type, assumption by assumption
    cleaning       finds and deletes what a run has left
    run            one run over several types
    report         what was found, as plain data

The command line imports this package only when the command runs. Nothing here prints or asks anybody.
"""
