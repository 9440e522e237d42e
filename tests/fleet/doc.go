// SPDX-License-Identifier: Apache-2.0

// Package fleet simulates many clusters on one control plane: a proxy gives each a path, such as https://127.0.0.1:1234/c/c-017, and
// an identity of its own, and passes the rest to the API server. A cluster's objects are in the namespace of its name, so that server-side
// apply, watches, discovery, permissions and TLS are real for each. Faults of single clusters are those of the proxy: no answer, refused
// connections, a denied admission.
//
// The controllers are processes of their own, with exactly the permissions of config. The program demo (make demo-fleet) and the
// benchmark of this package use the same simulation.
//
// Variables of the environment: SATCHEL_FLEET is how many clusters TestFleet simulates (20 to 5000), and SATCHEL_FLEET_KINDS how many kinds
// the bundle has there (1 to 10; 1 by default, with four objects). With more than 20 clusters it also measures a minute at rest.
//
//	SATCHEL_FLEET=100 SATCHEL_FLEET_KINDS=10 go test -v -run 'TestFleet$' ./tests/fleet
package fleet
