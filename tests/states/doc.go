// SPDX-License-Identifier: Apache-2.0

// Package states has golden states of an installation: situations that a version of Satchel left behind, as they are in etcd and on the
// volume of the deployment controller, with UIDs and resource versions. A test loads them and wants the current code to do nothing
// needless. `go test ./tests/states -update` records them again; docs/dev/releases.md says when.
package states
