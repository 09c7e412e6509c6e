"use strict";

// What this package was written for. The native library must say the same.
module.exports = { abiVersion: 1 };
