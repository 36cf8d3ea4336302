"""Read-only queries for the graph. `$name` is filled in by the driver, never by string formatting."""

OWNERS = """
MATCH (team:Team)-[:OWNS]->(service:Service {name: $name})
RETURN team.name, service.tier
"""

DEPENDENTS = """
MATCH (other:Service)-[:DEPENDS_ON*1..3]->(service:Service {name: $name})
RETURN DISTINCT other.name
LIMIT 50
"""
