// Package match decides which row of the routing table an inbound event belongs to.
//
// A row has a match expression and a target. The expression is key=glob pairs
// separated by spaces: platform, account, room, chat_jid, sender, sender_name and verb. All
// of them must match; no pair at all matches everything. Only sender authenticates: it is
// the id, while users choose their display name. Globs are those of [path.Match]: they
// are case-sensitive and "*" does not cross "/". Rows are tried in the order of seq,
// then id, and the first match wins.
//
// The package does no I/O. [Compile] turns the rows into an [Index], which finds the
// first match without trying every row.
package match
