REPLY = "Notes: {notes}\nAsked: {question}\nReply in a few words:"
