package db_test

const noID = 1 << 40
