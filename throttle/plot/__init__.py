"""Pictures for reports: lists of shapes (`picture`), written as SVG (`svg`) or painted as a PNG (`png`)."""
