// SPDX-License-Identifier: Apache-2.0

// Package certificate decides which certificates the webhooks of a deployment serve and trust, and issues
// those that are due. It is pure: time and randomness are passed in, the live Secrets are passed in as they were read,
// and the desired ones are returned as objects. It reads and writes nothing.
//
// # Secrets
//
// One certificate authority a deployment, in a Secret of type Opaque in the deployment's own namespace (see AuthorityID), or in the install namespace of another cluster:
//
//	tls.crt, tls.key    the authority that signs
//	next.crt, next.key  its successor, only while there is one: it is trusted already and does not sign yet
//	ca.crt              all authorities to trust: both, and earlier ones until they expire
//
// One serving certificate for each request, in a Secret of type kubernetes.io/tls: tls.crt, tls.key, and ca.crt as above. Keys are
// ECDSA P-256, private ones in PKCS #8. An authority can sign only for servers in the namespaces that it was made
// for (name constraints, extended key usage), so its key is worth little to a thief.
//
// A Secret is kept unchanged while it is good: nothing is written without a reason, and Issued gives it.
// Damaged or foreign contents are replaced; they are never an error. A certificate that was good stays
// trusted until it expires, even when its key is lost. To revoke all trust, delete the authority's Secret.
//
// # Times
//
// An authority lives ten years, a serving certificate two, and never longer than its authority. A serving certificate is
// renewed when two thirds of its life are over, in place, so that no Pod restarts. When an authority has three years left,
// it gets a successor, which signs only when every object that trusts the old one was seen to trust both (Input.Trusted), or
// the old one is unusable. Three years are longer than the life of a serving certificate, so that a change of
// authorities is over before any client depends on it.
package certificate
