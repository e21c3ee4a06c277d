"""How answers look to people: each function draws one kind of answer on a console."""
