// Package trust is "credence trust": the commands, or Terraform, by which a system trusts an identity. In goes an identity of a cluster; out
// comes text that is run by users, and never here.
package trust
