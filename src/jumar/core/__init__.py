"""What knows no subject: durable files and locks, text, redaction, marks."""
