package dev.toolspan

import dev.toolspan.internal.decode
import dev.toolspan.internal.encode

/**
 * JSON as this package has it, for programs that keep or send what it gives them. Objects are maps in the order of the text,
 * lists are lists; a number is a [Long], a [Double], or of `java.math` where these would lose a digit.
 */
public object Json {
    /** The value of a text. Throws [IllegalArgumentException] for what is no JSON. */
    @JvmStatic
    public fun parse(text: String): Any? = decode(text)

    /** The compact text of a value: of maps, lists, text, numbers, booleans, null, records, enums and the models of this package. */
    @JvmStatic
    public fun write(value: Any?): String = encode(value)
}
