// SPDX-License-Identifier: Apache-2.0

// Package certificate decides which certificates the webhooks of a deployment are served with and trusted by, and issues
// those that are due. It is pure: time and randomness are passed in, what lies on the cluster is passed in as it was read,
// and what should lie there is returned as objects. It reads and writes nothing.
//
// # Secrets
//
// One certificate authority a deployment, in a Secret of type Opaque in the deployment's own namespace (see AuthorityID), or in the install namespace of another cluster:
//
//	tls.crt, tls.key    the authority that signs
//	next.crt, next.key  its successor, only while there is one: it is trusted already and does not sign yet
//	ca.crt              all authorities to trust: both, and earlier ones until they end
//
// One serving certificate a request, in a Secret of type kubernetes.io/tls: tls.crt, tls.key, and ca.crt as above. Keys are
// ECDSA P-256, private ones in PKCS #8. An authority can vouch for nothing but servers in the namespaces that it was made
// for (name constraints, extended key usage), so its key is worth little to a thief.
//
// What is in a Secret is kept as it is for as long as it is good: nothing is written without a reason, and Issued gives it.
// What is damaged, foreign or not ours in any other way is replaced; it is never an error. A certificate that was good stays
// trusted until it ends, even when its key is lost. To trust nothing of before, delete the authority's Secret.
//
// # Times
//
// An authority lives ten years, a serving certificate two, and never longer than its authority. A serving certificate is
// renewed when two thirds of its life are over, in place, so that no Pod restarts. When three years of an authority are left,
// it gets a successor, which signs only when everything that trusts the old one was seen to trust both (Input.Trusted), or
// the old one is of no use any more. Three years are longer than a serving certificate lives, so that a change of
// authorities is over before anybody depends on it.
package certificate
