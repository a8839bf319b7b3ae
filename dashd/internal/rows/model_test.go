package rows_test

const noID = 1 << 40
