"""From a request to a read reply: endpoint, budget, ledger, client, and one reader of what models send."""
