"""The output of programs and their launchers when they fail. Pure: text in, values out.

Users' programs write the text: it is bounded here, and searched in linear time.
"""
