package store_test

// noID is an id that no row has.
const noID = 1 << 40
