// SPDX-License-Identifier: Apache-2.0

// Package fleet simulates many clusters on one control plane: a proxy gives each a path, such as https://127.0.0.1:1234/c/c-017, and
// an identity of its own, and passes the rest to the API server. A cluster's objects are in the namespace of its name, so that server-side
// apply, watches, discovery, permissions and TLS are real for each. Faults of single clusters are those of the proxy: no answer, refused
// connections, a denied admission.
//
// The controllers are processes of their own, with exactly the permissions of config. The program demo (make demo-fleet) and the
// benchmark of this package use the same simulation.
package fleet
