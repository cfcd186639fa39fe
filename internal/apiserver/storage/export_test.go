package storage

// StartBy is Start, which is logged as slow when another clock has the time.
var StartBy = startBy
