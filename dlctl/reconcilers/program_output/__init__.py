"""What programs and their launchers print when they fail. Pure: text in, values out.

Users' programs write the text: it is bounded here, and searched in linear time.
"""
