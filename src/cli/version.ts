/** The version of this build; a test holds it against package.json, which a bundle cannot read at run time. */
export const version = '0.1.0'
