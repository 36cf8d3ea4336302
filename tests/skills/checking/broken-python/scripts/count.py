def count(:
    pass
