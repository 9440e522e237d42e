// SPDX-License-Identifier: Apache-2.0

// Package lastapplied keeps the objects that each deployment applied last, on the volume of the deployment controller, so
// that drift is corrected while a newer revision cannot be loaded. It does not know what it keeps: values are bytes.
package lastapplied
