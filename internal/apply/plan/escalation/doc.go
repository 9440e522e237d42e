// SPDX-License-Identifier: Apache-2.0

// Package escalation names the objects of an upgrade that get more power than before: objects that guard
// the cluster or its approvals, labels of Namespaces that decide which Pods are admitted there, and
// the power of Pods over their node. New permissions and changes of CRDs are in package impact.
//
// It is a pure function of the objects before and after, linear in their size.
package escalation
