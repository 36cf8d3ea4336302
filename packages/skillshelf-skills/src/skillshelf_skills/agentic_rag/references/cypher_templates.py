"""Cypher for the graph: the templates that `query_graph` runs, and the pattern for queries of your own.

`query_graph` takes the name of a template and its parameters; each `$name` in the text is a parameter. The templates
run as they stand here, on the embedded graph and on Neo4j alike. They find nodes by the property `name`. If the graph
has no such property, `describe_graph` says which there are, and `run_cypher` takes a query that uses them.

For a query of your own, start from the template that comes closest, and keep to these rules:

- Take labels, types and properties from `describe_graph`. A wrong one is an error in the embedded graph, and finds
  nothing in Neo4j.
- Put values into `parameters`, never into the text.
- Give a path of variable length a bound (`*1..3`), and the result a LIMIT. Without them a query ends by its time limit.
- Return whole nodes and relationships (`RETURN n, r, m`) if you need their kinds: functions for these differ
  (`label(r)` in the embedded graph, `type(r)` in Neo4j).
- One statement, and only reading: no CREATE, MERGE, SET, DELETE. No LOAD, COPY, INSTALL or CALL of procedures, which
  reach beyond the graph, and are refused. No shortestPath, which the embedded graph does not know: use `paths`.
- `end`, `order`, `limit` and other words of the language cannot be names of parameters.
- No rows: the name is spelled differently. Look for a part of it with the template `find`.
"""

TEMPLATES: dict[str, dict[str, str]] = {
    "find": {
        "purpose": "Nodes whose name contains a text, in any case.",
        "cypher": """
MATCH (n)
WHERE toLower(n.name) CONTAINS toLower($name)
RETURN n
LIMIT 25
""",
    },
    "neighbours": {
        "purpose": "Everything that a node is directly connected with, in both directions.",
        "cypher": """
MATCH (n)-[r]->(m)
WHERE toLower(n.name) = toLower($name) OR toLower(m.name) = toLower($name)
RETURN n, r, m
LIMIT 100
""",
    },
    "reachable": {
        "purpose": "What a node leads to within three steps: what it depends on, owns, contains.",
        "cypher": """
MATCH (n)-[*1..3]->(m)
WHERE toLower(n.name) = toLower($name)
RETURN DISTINCT m
LIMIT 100
""",
    },
    "reaching": {
        "purpose": "What leads to a node within three steps: what depends on it, owns it, contains it.",
        "cypher": """
MATCH (m)-[*1..3]->(n)
WHERE toLower(n.name) = toLower($name)
RETURN DISTINCT m
LIMIT 100
""",
    },
    "paths": {
        "purpose": "How two nodes are connected, within three steps and in any direction.",
        "cypher": """
MATCH p = (a)-[*1..3]-(b)
WHERE toLower(a.name) = toLower($first) AND toLower(b.name) = toLower($second)
RETURN p
LIMIT 10
""",
    },
    "mentioned": {
        "purpose": "Nodes whose name occurs in a question.",
        "cypher": """
MATCH (n)
WHERE size(n.name) > 1 AND toLower($question) CONTAINS toLower(n.name)
RETURN n
LIMIT 50
""",
    },
    "mentioned_connections": {
        "purpose": "Relationships of the nodes whose name occurs in a question. `gather` runs this one and the last.",
        "cypher": """
MATCH (n)-[r]->(m)
WHERE (size(n.name) > 1 AND toLower($question) CONTAINS toLower(n.name))
   OR (size(m.name) > 1 AND toLower($question) CONTAINS toLower(m.name))
RETURN n, r, m
LIMIT 300
""",
    },
}
