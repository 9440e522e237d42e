// SPDX-License-Identifier: Apache-2.0

// Package rights computes what an account must be allowed to do in order to
// install, upgrade and remove a bundle. It is pure: the same objects give the same
// rules, in the same order.
//
// What was found out on a real API server (1.36), and what the rules rely on:
//
//   - `create` by a server-side apply is authorized with the name of the object,
//     so that it can be limited by resourceNames as `get`, `patch` and `delete` can.
//   - A Namespace is authorized in itself: a Role inside of it may allow to get,
//     patch and delete it.
//   - Whoever writes a Role or ClusterRole must hold every rule in it, at its
//     place, on every write, whatever was there before; or the verb `escalate` on
//     that role. A ClusterRole with an aggregationRule needs `*` on everything, or
//     `escalate`.
//   - Whoever writes a binding must hold every rule of the role it names, or the
//     verb `bind` on that role, at the place of the binding.
//   - Whoever writes an admission policy must be allowed to get all objects of the
//     kind of its parameters.
//
// Nothing needs `list`: where an account may not list, the engine reads object by
// object. It is recommended, with what helps to name the causes of failures.
package rights
