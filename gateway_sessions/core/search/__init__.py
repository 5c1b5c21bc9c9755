"""The rules of search, the same for every database: tokens, queries, filters, ranking and snippets.

- ``boolean_query``: Translation of a search query to MySQL boolean mode, and the words that MySQL indexes
  of a message.
- ``criteria``: Criteria of a search: tests for a message, and the tokens that every match is certain to
  have.
- ``documents``: A message as the search index stores it: its tokens, stems and labels, in a file or in a
  server.
- ``excerpts``: The excerpt of an earlier conversation that the session search tool gives to an agent.
- ``filters``: `SearchFilter`: scope, sources, roles and dates of a search, and the index labels that narrow
  it.
- ``near_words``: Spelling tolerance: words that share trigrams with a searched word or differ from it by
  one slip.
- ``query``: The parser of search queries, and the tree of phrases that a message must match.
- ``ranking``: BM25 scores of the messages that a search found, the same for every database.
- ``results``: Results of a search: hits, matching conversations, and snippets with the matches marked.
- ``stems``: Stems of words by language, so that a search for `run` also finds `running`.
- ``tokenizer``: The tokenizer of the search: words, and overlapping character pairs for scripts without
  spaces.
- ``tsquery``: Translation of a search query to a PostgreSQL `tsquery`.
"""
