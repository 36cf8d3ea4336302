import os

os.environ["NO_SUCH_VARIABLE_IN_ANY_ENVIRONMENT"]
