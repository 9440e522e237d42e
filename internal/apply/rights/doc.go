// SPDX-License-Identifier: Apache-2.0

// Package rights computes the RBAC permissions that an account needs to
// install, upgrade and remove a bundle. It is pure: the same objects give the same
// rules, in the same order.
//
// Observed on a real API server (1.36), and the basis of the rules:
//
//   - `create` by a server-side apply is authorized with the name of the object,
//     so that it can be limited by resourceNames as `get`, `patch` and `delete` can.
//   - A request for a Namespace is authorized inside of it: a Role there may allow to get,
//     patch and delete it.
//   - The writer of a Role or ClusterRole must hold every rule in it, at its
//     place, on every write, whatever was there before; or the verb `escalate` on
//     that role. A ClusterRole with an aggregationRule needs `*` on everything, or
//     `escalate`.
//   - The writer of a binding must hold every rule of the role it names, or the
//     verb `bind` on that role, at the place of the binding.
//   - The writer of an admission policy must be allowed to get all objects of the
//     kind of its parameters.
//
// `list` is never required: where an account may not list, the engine reads object by
// object. It is recommended, with the permissions for finding the causes of failures.
package rights
