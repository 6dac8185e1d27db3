"""How clients are connected: what they may send before a route sees it, how slowly, and who stays when it is full.

Nothing here knows who speaks or what is asked for; that is decided by the app, in ``api`` and ``auth``.
"""
