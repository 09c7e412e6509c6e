"use strict";

const { ToolspanError, classes } = require("./lib/errors.js");

module.exports = { ...require("./lib/api.js"), ...require("./lib/tool.js"), ToolspanError, ...classes };
