package clitest

// exe ends the name of a program.
const exe = ".exe"
